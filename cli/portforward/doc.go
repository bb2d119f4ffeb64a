// Package portforward accepts connections on ports of this machine and joins each with one to a port of a task.
//
//	program ──> Listener ──> Dial ──> port of the task
//	        <── both ways, each ends by itself ──>
//
// It imports activities/sessions/wire, and nothing else of this module.
package portforward
