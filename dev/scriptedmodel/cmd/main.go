package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"switchyard/dev/scriptedmodel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "scriptedmodel:", err)
		os.Exit(1)
	}
}

// run serves the model that the arguments describe until the context ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("scriptedmodel", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("script", "", "`FILE` with the script, in YAML or JSON")
	address := flags.String("address", "127.0.0.1:8089", "`HOST:PORT` to listen on; port 0 picks a free one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; name the script with -script FILE", flags.Arg(0))
	case *path == "":
		return errors.New("-script is missing; name a file with the script")
	}
	text, err := os.ReadFile(*path)
	if err != nil {
		return fmt.Errorf("read the script: %w", err)
	}
	script, err := scriptedmodel.Parse(text)
	if err != nil {
		return fmt.Errorf("read the script %s: %w", *path, err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return fmt.Errorf("listen on -address %s: %w", *address, err)
	}
	return serve(ctx, listener, scriptedmodel.New(script), stdout)
}

// serve serves a model until the context ends, then cuts the open replies.
func serve(ctx context.Context, listener net.Listener, model *scriptedmodel.Server, stdout io.Writer) error {
	server := &http.Server{Handler: model, ReadHeaderTimeout: 10 * time.Second}
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { closed <- server.Close() })
	base := "http://" + listener.Addr().String()
	fmt.Fprintf(stdout, "The scripted model listens on %s\n  ANTHROPIC_BASE_URL=%s\n  OPENAI_BASE_URL=%s/v1\n", base, base, base)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve: %w", err)
	}
	err := <-closed
	outcomes := map[scriptedmodel.Outcome]int{}
	requests := model.Requests()
	for _, request := range requests {
		outcomes[request.Outcome]++
	}
	fmt.Fprintf(stdout, "%d requests: %d delivered, %d refused, %d broken, %d abandoned; %d turns were delivered again\n",
		len(requests), outcomes[scriptedmodel.OutcomeDelivered], outcomes[scriptedmodel.OutcomeRefused],
		outcomes[scriptedmodel.OutcomeBroken], outcomes[scriptedmodel.OutcomeAbandoned]+outcomes[scriptedmodel.OutcomeOpen], model.Repeated())
	return err
}
