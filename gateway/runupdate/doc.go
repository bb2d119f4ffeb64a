// Package runupdate sends updates to the workflows of runs, a bounded number at a time for each run, and gives refusals their
// codes. It knows what a refusal of Temporal means while a run continues as new or has just ended.
//
// Of this module it may import proto, gateway/rpcerror, gateway/runview and workflows/names.
package runupdate
