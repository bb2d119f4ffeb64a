// Package oidc authenticates callers by the tokens of an OpenID Connect issuer: signed ID or access tokens (JWT).
//
// Of this module it may import proto and gateway/auth.
package oidc
