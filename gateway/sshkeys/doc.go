// Package sshkeys keeps the public keys by which people log in with SSH, in the store that the gateways of a deployment share.
//
//	           add                  remove
//	(nothing) ─────▶ kept (by name) ───────▶ removed
//	                   ▲                        │
//	                   └────────── add ─────────┘
//
// Several names may add the same key, and each then has it: adding the public key of another person takes nothing from that
// person. A key has the role that its name had when it was added. Keys that were added while authentication was off belong
// to unverified names, and are valid only while it is off.
//
// Of this module it may import proto, activities/store, activities/store/storekey, gateway/auth, gateway/paging,
// gateway/rpcerror and workflows/sshkey.
package sshkeys
