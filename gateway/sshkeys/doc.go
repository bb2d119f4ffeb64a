// Package sshkeys keeps the public keys by which people log in with SSH, in the store that the gateways of a deployment share.
//
//	           add                  remove
//	(nothing) ─────▶ kept (by name) ───────▶ removed
//	                   ▲                        │
//	                   └────────── add ─────────┘
//
// A key that several names have added is that of each of them: whoever adds the key of another one, which is public, takes
// nothing from its owner. It counts with the role that the name had when it was added. Keys that were added while
// authentication was off belong to names that nothing proves, and count only while it is off.
//
// Of this module it may import proto, activities/store, activities/store/storekey, gateway/auth, gateway/paging,
// gateway/rpcerror and workflows/sshkey.
package sshkeys
