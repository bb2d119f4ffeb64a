package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	v1 "switchyard/proto/switchyard/v1"
)

func main() {
	guide := flag.String("guide", "", "`FILE` whose table of paths is written anew")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *guide); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

// run reads the plugin's document and prints the finished one, with sorted keys, so that the same proto gives the same
// bytes. It also updates the guide in a file.
func run(in io.Reader, out io.Writer, guide string) error {
	decoder := json.NewDecoder(in)
	decoder.UseNumber()
	var document object
	if err := decoder.Decode(&document); err != nil {
		return fmt.Errorf("read the document of protoc-gen-connect-openapi: %w", err)
	}
	if err := finish(document, v1.Services()); err != nil {
		return err
	}
	if err := updateGuide(guide, document); err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("print the document: %w", err)
	}
	_, err := out.Write(text.Bytes())
	return err
}
