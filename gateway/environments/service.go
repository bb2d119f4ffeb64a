package environments

import "switchyard/proto/switchyard/v1/switchyardv1connect"

// Service answers the calls of EnvironmentService. It is safe for concurrent use.
type Service struct {
	switchyardv1connect.UnimplementedEnvironmentServiceHandler
}
