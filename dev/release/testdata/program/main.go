// Command program takes the place of switchyard in tests. It has modules, and prints its arguments.
package main

import (
	"fmt"
	"os"

	"github.com/klauspost/pgzip"
)

func main() {
	fmt.Println(os.Args[1:], os.Getuid(), pgzip.BestSpeed)
}
