// Command changes keeps the changelog. A change that users notice is described in a fragment, a file in the folder changes.
//
//	changes check              checks the fragments, and that each commit since the last release that changes the surface of
//	                           the product has one
//	changes release VERSION    moves the fragments into CHANGELOG.md, as the section of this version
//
// It imports nothing of Switchyard.
package main
