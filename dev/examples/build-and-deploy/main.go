// Command greeter greets the people named in its arguments. The example build-and-deploy.yaml builds, tests and deploys
// it.
package main

import (
	"flag"
	"fmt"
	"strings"
)

const version = "1.0.0"

func main() {
	showVersion := flag.Bool("version", false, "print the version")
	flag.Parse()
	if *showVersion {
		fmt.Println(version)
		return
	}
	fmt.Println(greet(flag.Args()))
}

// greet returns a greeting for the given names, or for the world.
func greet(names []string) string {
	if len(names) == 0 {
		names = []string{"world"}
	}
	return "Hello, " + strings.Join(names, " and ") + "!"
}
