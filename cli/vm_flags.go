package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"switchyard/cli/exit"
	"switchyard/cli/stack"
)

// vmFlags holds the flag for the images that virtual machines on the nodes of a process may use.
type vmFlags struct{ images []string }

func (v *vmFlags) add(f *pflag.FlagSet) {
	f.StringSliceVar(&v.images, "vm-images", nil, "folder with disk images that the vmImage of virtual machines may name; may be repeated")
}

func (v *vmFlags) config() (cfg stack.VMConfig, err error) {
	for _, dir := range v.images {
		switch info, err := os.Stat(dir); {
		case !filepath.IsAbs(dir):
			return cfg, exit.Usagef("--vm-images %s: write an absolute path", dir)
		case err != nil:
			return cfg, exit.Usagef("--vm-images %s: %w", dir, err)
		case !info.IsDir():
			return cfg, exit.Usagef("--vm-images %s: it is not a folder; name the folder that contains the images", dir)
		}
		cfg.Images = append(cfg.Images, filepath.Clean(dir))
	}
	return cfg, nil
}
