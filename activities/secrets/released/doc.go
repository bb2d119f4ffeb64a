// Package released gives a node access to the stored secrets that a gateway releases, in the same process or through
// SecretService.
//
// It may import proto, activities/gatewayclient and activities/secrets.
package released
