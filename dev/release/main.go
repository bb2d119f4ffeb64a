package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"aead.dev/minisign"
)

// release describes what is made, and of what.
type release struct {
	version string
	commit  string
	// time is that of every file.
	time time.Time
	// source is the root of the repository, and manuals the folder that dev/manuals has written.
	source, manuals string
	output          string
	// isDraft leaves out what a test does not install: everything but deb packages, and their compression.
	isDraft  bool
	binaries []binary
	// key signs the checksums. It is nil for a release without a signature.
	key *minisign.PrivateKey
}

// binary is the program for one platform.
type binary struct {
	system, architecture string
	path                 string
}

// semver matches versions such as 0.1.0 and 0.2.0-rc.1.
var semver = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes a release as the arguments say. Those that are no flags are binaries, as SYSTEM/ARCHITECTURE=PATH.
func run(args []string) error {
	var r release
	var seconds int64
	var publicKey string
	var isUnsigned, checksOnly bool
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.version, "version", "", "version, such as 0.1.0")
	flags.StringVar(&r.commit, "commit", "", "commit of which the binaries were built")
	flags.Int64Var(&seconds, "time", 0, "time of all files, in seconds since 1970")
	flags.StringVar(&r.source, "source", "", "root of the repository")
	flags.StringVar(&r.manuals, "manuals", "", "folder that dev/manuals has written")
	flags.StringVar(&r.output, "output", "", "folder for the files")
	flags.BoolVar(&r.isDraft, "draft", false, "make only deb packages, without compression, for tests")
	flags.StringVar(&publicKey, "public-key", "", "file with the public half of the key that $"+keyVariable+" names, with which the release is signed")
	flags.BoolVar(&isUnsigned, "unsigned", false, "sign nothing")
	flags.BoolVar(&checksOnly, "check", false, "check version and key, and make nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !semver.MatchString(r.version) {
		return fmt.Errorf("version %q is not of the form 1.2.3 or 1.2.3-rc.1", r.version)
	}
	if !isUnsigned && !r.isDraft {
		key, err := readKey(publicKey, os.Getenv)
		if err != nil {
			return err
		}
		r.key = key
	}
	if checksOnly {
		return nil
	}
	r.time = time.Unix(seconds, 0).UTC()
	for _, arg := range flags.Args() {
		platform, path, _ := strings.Cut(arg, "=")
		system, architecture, ok := strings.Cut(platform, "/")
		if !ok || path == "" {
			return fmt.Errorf("%q is not SYSTEM/ARCHITECTURE=PATH", arg)
		}
		r.binaries = append(r.binaries, binary{system, architecture, path})
	}
	return r.make()
}

// make writes the files of the release.
func (r release) make() error {
	var made []string
	for _, b := range r.binaries {
		if !r.isDraft {
			name, err := r.tarball(b)
			if err != nil {
				return err
			}
			made = append(made, name)
		}
		if b.system != "linux" {
			continue
		}
		packages, err := r.packages(b)
		if err != nil {
			return err
		}
		made = append(made, packages...)
	}
	if !r.isDraft {
		images, err := r.images()
		if err != nil {
			return err
		}
		modules, err := r.readModules()
		if err != nil {
			return err
		}
		bill, err := r.sbom(modules)
		if err != nil {
			return err
		}
		made = append(append(made, images...), bill)
		statement, err := r.provenance(modules, made)
		if err != nil {
			return err
		}
		made = append(made, statement)
	}
	if err := writeSums(filepath.Join(r.output, sumsName), r.output, made); err != nil || r.key == nil {
		return err
	}
	return r.sign()
}
