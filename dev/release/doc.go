// Command release makes the files of a release from binaries that are built already; dev/release.sh builds them and starts
// it. It is a module of its own, because its libraries would raise versions of the product.
//
//	switchyard_VERSION_SYSTEM_ARCHITECTURE.tar.gz   for each platform
//	switchyard_VERSION_ARCHITECTURE.deb, .rpm       for Linux
//	SHA256SUMS                                      checksums of the files above
//
// The same binaries give the same bytes: names are sorted, times are that of the commit, and nothing depends on the
// machine. It imports nothing of Switchyard.
package main
