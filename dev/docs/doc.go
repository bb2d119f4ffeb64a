// Command docs writes the documentation as a static site into a folder, which any web server can serve.
//
//	go run ./dev/docs FOLDER
//
// Of this module it imports docs and docs/site.
package main
