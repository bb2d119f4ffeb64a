// Package servicetest lets tests of clients of the gateway answer calls as they configure, and see the requests. It also makes
// calls for tests of services. Only tests import it.
//
// Of this module it may import proto.
package servicetest
