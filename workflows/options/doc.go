// Package options holds the options of all activity calls, with their time-outs. It imports proto, workflows/names and workflows/notification, and of
// Temporal only what workflow code may.
package options
