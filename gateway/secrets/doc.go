// Package secrets answers the calls of SecretService: people set, list and delete secrets, and nodes are given the values
// that their attempts need.
//
// Of this module it may import proto, activities/secrets/vault, gateway/auth, gateway/paging, gateway/rpcerror,
// and workflows/nearest.
package secrets
