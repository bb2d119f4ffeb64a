package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	// These imports register the log formats and metrics of the programs.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"switchyard/dev/kubernetes/fakekubelet"
)

const usage = `usage:
  kubernetes-for-tests up --dir DIR [--node none|kubelet] [--fake-nodes N] ...
  kubernetes-for-tests kubectl --kubeconfig DIR/kubeconfig ...
  kubernetes-for-tests fake-kubelet --kubeconfig DIR/kubeconfig [--nodes N] ...
  kubernetes-for-tests etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet ...
`

// programs maps names to the commands of Kubernetes.
var programs = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

// commands maps names to the commands of this module.
var commands = map[string]func(args []string) error{
	"up":           up,
	"etcd":         etcd,
	"fake-kubelet": fakekubelet.Main,
	namespacesInit: runNamespacesInit,
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	name, args := os.Args[1], os.Args[2:]
	if program, ok := programs[name]; ok {
		// The programs read the arguments of the process.
		os.Args = append([]string{name}, args...)
		os.Exit(cli.Run(program()))
	}
	command, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "kubernetes-for-tests has no command %q\n%s", name, usage)
		os.Exit(2)
	}
	switch err := command(args); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "kubernetes-for-tests %s: %v\n", name, err)
		os.Exit(1)
	}
}
