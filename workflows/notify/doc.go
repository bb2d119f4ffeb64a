// Package notify implements the workflow Notify, which tells people about one event of a run. Its run starts it and does not wait
// for its end. The ID of the workflow names the event, and Temporal refuses a second workflow with the ID.
//
//	PlanNotification: which targets, which texts ──> SendNotification, once for each target, for up to 24 h
//
// It imports proto, workflows/names and workflows/options, and of Temporal only what workflow code may.
package notify
