// Package runevents lists the events of a run over all its generations, and those of all runs.
//
// The events of a run come from several workflows: its own, and the children that carry the parts of its large fan-outs.
// Each of them has stored its older events and holds the newest ones until it ends. A merge brings all of them into one
// order.
//
// Of this module it may import proto, gateway/paging, gateway/rpcerror, gateway/runindex, gateway/runview,
// activities/store and workflows/names.
package runevents
