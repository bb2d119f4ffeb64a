// Package signing proves that a gateway of the deployment has taken a decision, such as the approval of a run, or opens a
// connection to another gateway. The proof is necessary because anyone with access to Temporal can send a run a message
// that looks like a decision.
//
// The key is in the store that gateways and control processes share. Nodes that use the gateway as their store cannot read
// the key.
//
// Of this module it may import proto, activities/store and activities/store/storekey.
package signing
