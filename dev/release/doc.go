// Command release makes the files of a release from binaries that are built already; dev/release.sh builds them and starts
// it. It is a module of its own, because its libraries would raise versions of the product.
//
//	switchyard_VERSION_SYSTEM_ARCHITECTURE.tar.gz   for each platform
//	switchyard_VERSION_ARCHITECTURE.deb, .rpm       for Linux
//	switchyard_VERSION_image.tar                    an OCI image layout, with an index of the architectures
//	switchyard_VERSION.cdx.json                     what the binaries consist of, in CycloneDX
//	switchyard_VERSION.intoto.jsonl                 how the files were made: a statement of SLSA in an envelope of DSSE
//	SHA256SUMS, SHA256SUMS.minisig                  checksums of the files above, and their signature
//
// The same binaries give the same bytes: names are sorted, times are that of the commit, and nothing depends on the
// machine. Only a signature differs by its key. The package imports nothing of Switchyard.
package main
