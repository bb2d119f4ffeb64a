// Package secrets implements SecretService: people set, list and delete secrets, and nodes receive the values that their
// attempts need.
//
//	ReleaseSecret ──> does the attempt run on that node? ──> does its task name the secret? ──> may its submitter use it? ──> vault
//
// Of this module it may import proto, activities/secrets/vault, activities/store/storekey, gateway/auth, gateway/nodeaccess,
// gateway/paging, gateway/rpcerror, gateway/runview, workflows/definition, workflows/nearest and workflows/secretref.
package secrets
