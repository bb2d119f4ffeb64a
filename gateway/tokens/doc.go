// Package tokens keeps the tokens by which callers log in to the gateways of a deployment, in the store that these share.
//
//	            create               expiry
//	(nothing) ─────────▶ active ───────────────▶ expired
//	                       │ revoke
//	                       └───────────────────▶ revoked
//
// A token is sy_<id>_<secret>. The store has the id and the digest of the secret, so that who reads the store cannot log
// in. The secret has 256 random bits, which no dictionary holds: a plain digest is enough for it.
//
// Of this module it may import proto, activities/store, activities/store/storekey, gateway/auth, gateway/paging and
// gateway/rpcerror.
package tokens
