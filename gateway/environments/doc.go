// Package environments implements the EnvironmentService, which manages named environments.
//
//	CreateEnvironment ──> may it be? ──> which node? ──> archive reserved ──> workflow Environment
//	                                                                             │ its node stores the archive
//	GetEnvironment, ListEnvironments <── library (ready) and workflows (creating, failed) <┘
//	DeleteEnvironment ──> ends a creation, or: does an open run name it? ──> library
//
// Of this module it may import proto, activities/executor, gateway/auth, gateway/paging, gateway/rpcerror, gateway/runindex,
// gateway/runview, workflows/dataconverter, workflows/definition, workflows/names and workflows/nearest.
package environments
