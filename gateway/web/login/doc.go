// Package login keeps a browser logged in: one cookie holds the token of the caller, hidden from scripts, and another the secret
// that proves that a form comes from a page of this gateway.
//
//	cookie token   what the API takes as `Authorization: Bearer`; only the page reads it from the cookie
//	cookie form    a random secret; each form has its HMAC, masked anew for each answer
//
// The cookie names contain the port, because browsers send cookies to all ports of a host.
//
// Of this module it imports nothing.
package login
