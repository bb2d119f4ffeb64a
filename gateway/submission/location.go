package submission

import "connectrpc.com/connect"

// MarkCreated sets the Location header to the run that a call has started. REST then answers with the status 201.
func MarkCreated(res connect.AnyResponse, run string) {
	res.Header().Set("Location", "/v1/runs/"+run)
}
