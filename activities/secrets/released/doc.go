// Package released has the stored secrets of a node: a gateway releases them, in the same process or by SecretService.
//
// It may import proto, activities/gatewayclient and activities/secrets.
package released
