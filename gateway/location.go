package gateway

import "connectrpc.com/connect"

// markCreated names the run that a call has started in the headers of the answer, which REST then gives the status 201.
func markCreated(res connect.AnyResponse, run string) {
	res.Header().Set("Location", "/v1/runs/"+run)
}
