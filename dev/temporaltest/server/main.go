package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"switchyard/dev/embedded"
	"switchyard/workflows/visibility"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "temporal server for tests:", err)
		os.Exit(1)
	}
}

func serve() error {
	server, err := embedded.Start(context.Background(), embedded.Options{SearchAttributes: visibility.Types()})
	if err != nil {
		return err
	}
	fmt.Println(server.Address())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Stop()
}
