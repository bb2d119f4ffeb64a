// Command release makes the files of a release from binaries that are built already; dev/release.sh builds them and starts
// it. It is a module of its own, because its libraries would raise versions of the product.
//
//	switchyard_VERSION_SYSTEM_ARCHITECTURE.tar.gz   for each platform
//	switchyard_VERSION_ARCHITECTURE.deb, .rpm       for Linux
//	switchyard_VERSION_oci.tar                      the container image for all Linux platforms
//	switchyard_VERSION.cdx.json                     the bill of materials, in CycloneDX
//	switchyard_VERSION.provenance.json              how the files above were built, as a statement of in-toto and SLSA
//	SHA256SUMS                                      checksums of the files above
//	SHA256SUMS.minisig                              the signature over them, of minisign
//
// The same binaries and the same key give the same bytes: names are sorted, times are that of the commit, and nothing depends
// on the machine. Without a key all but the signature is the same, so anyone can compare a build of their own.
//
// # Image
//
// The file is an OCI layout. Its only entry is an index of the platforms. The manifest.json beside it is for versions of
// `docker load` that know no index; they name the images switchyard:VERSION-ARCHITECTURE. The image has no shell.
//
// # Provenance
//
// The type of the build is switchyard:dev/release.sh: the script of the commit with the parameters version and platforms, by
// the Go of the internal parameters. The builder has the same name, since no service builds releases: it is the machine of
// whoever signs. The sums of modules are what in-toto calls dirHash.
//
// # Signature
//
// The secret key is named by the environment and is never in the tree. Its public half is dev/release/minisign.pub, which the
// release manager creates with the first release. Until then, dev/release.sh makes a release only with a key that its caller
// names (--public-key), or with no signature (--unsigned).
//
// It imports nothing of Switchyard.
package main
