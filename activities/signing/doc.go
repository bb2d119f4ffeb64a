// Package signing proves that a gateway of the deployment has taken a decision, such as the approval of a run, or opens a
// connection to another gateway: whoever can reach Temporal can send a run what looks like a decision.
//
// The key is in the store that gateways and control processes share. Nodes that use the gateway as their store cannot read
// it.
//
// Of this module it may import proto, activities/store and activities/store/storekey.
package signing
