// Command chaos breaks a deployment of real processes on purpose and reports
// anything that was lost, doubled or stuck.
//
//	go run ./dev/chaos [SCENARIO...] [-times N] [-scale full|fast] [-soak 10m] [-binary PATH]
package main
