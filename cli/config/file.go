package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"switchyard/cli/exit"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
)

// file is a settings file in YAML. Its keys are names of flags, with dashes or in camelCase, and names of commands,
// whose sections hold settings for these commands alone:
//
//	gateway: http://yard:7280
//	worker:
//	  label: [server, fast]
//	  maxParallel: 8
//	runs: { list: { limit: 20 } }
//
//	profiles:
//	  prod: { gateway: https://yard:7280, tokenFile: /etc/switchyard/token }
//
// A key that is not a flag of any command is an error anywhere; a flag of another command is ignored. The settings of
// the profile that --profile names override the others.
type file struct {
	path     string
	settings *yaml.Node // a mapping, or nil if the file is empty
	problems source.Problems
}

// fileSetting is a value in a configuration file.
type fileSetting struct {
	value *yaml.Node
	line  int
}

// profilesKey is the key that holds the profiles of a file.
const profilesKey = "profiles"

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// readFile reads a configuration file and checks its keys.
func readFile(path string, root *cobra.Command) (*file, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, exit.Usagef("--config: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	if err != nil {
		return nil, exit.Usagef("--config: %w", err)
	}
	c := &file{path: path}
	var document yaml.Node
	switch err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document); {
	case errors.Is(err, io.EOF):
		return c, nil
	case err != nil:
		return nil, exit.Usagef("--config %s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	switch c.settings = resolved(document.Content[0]); {
	case c.settings.Tag == "!!null":
		c.settings = nil
	case c.settings.Kind != yaml.MappingNode:
		c.add(c.settings, "settings must map flag names to values", "")
	default:
		c.check(c.settings, root)
	}
	return c, c.err()
}

// check reports the keys of a section that are neither flags nor commands.
func (c *file) check(section *yaml.Node, cmd *cobra.Command) {
	flags := flagsBelow(cmd)
	seen := map[string]bool{}
	for key, value := range entries(section) {
		name := kebab(key.Value)
		if cmd == cmd.Root() && section == c.settings && key.Value == profilesKey {
			c.checkProfiles(value, cmd)
			continue
		}
		if sub := subcommand(cmd, key.Value); sub != nil && value.Kind == yaml.MappingNode {
			if seen["section "+sub.Name()] {
				c.add(key, fmt.Sprintf("section %s appears twice", sub.Name()), "")
			}
			seen["section "+sub.Name()] = true
			c.check(value, sub)
			continue
		}
		if !flags[name] {
			candidates := make([]string, 0, len(flags))
			for flag := range flags {
				candidates = append(candidates, flag)
			}
			for _, sub := range cmd.Commands() {
				candidates = append(candidates, sub.Name())
			}
			hint := ""
			if near := nearest.Word(key.Value, slices.Sorted(slices.Values(candidates))); near != "" {
				hint = "did you mean " + near + "?"
			}
			c.add(key, fmt.Sprintf("there is no setting %q", key.Value), hint)
			continue
		}
		if seen[name] {
			c.add(key, fmt.Sprintf("%s is set twice", name), "")
		}
		seen[name] = true
	}
}

// checkProfiles reports the problems of the profiles in a file.
func (c *file) checkProfiles(profiles *yaml.Node, root *cobra.Command) {
	if profiles.Kind != yaml.MappingNode {
		c.add(profiles, profilesKey+" must map names to settings", "")
		return
	}
	for name, settings := range entries(profiles) {
		switch settings.Kind {
		case yaml.MappingNode:
			c.check(settings, root)
		default:
			c.add(settings, fmt.Sprintf("profile %s must map flag names to values", name.Value), "")
		}
	}
}

// profile returns the settings of a profile. If the profile does not exist, it reports a problem and returns nil.
func (c *file) profile(name string) *yaml.Node {
	var names []string
	at := c.settings
	for key, profiles := range entries(c.settings) {
		if key.Value != profilesKey {
			continue
		}
		at = key
		for key, settings := range entries(profiles) {
			if key.Value == name {
				return settings
			}
			names = append(names, key.Value)
		}
	}
	hint := "profiles: { " + name + ": { gateway: https://... } } in this file creates it"
	if near := nearest.Word(name, slices.Sorted(slices.Values(names))); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(names) > 0 {
		hint = "the profiles are " + strings.Join(names, ", ")
	}
	if at == nil {
		at = &yaml.Node{Line: 1, Column: 1}
	}
	c.add(at, fmt.Sprintf("there is no profile %q", name), hint)
	return nil
}

// lookup returns the settings in a section of the file for the flags of a command, by flag name. The command's own
// section overrides those of its parent commands.
func (c *file) lookup(section *yaml.Node, cmd *cobra.Command) map[string]fileSetting {
	found := map[string]fileSetting{}
	path := strings.Fields(cmd.CommandPath())[1:]
	at := cmd.Root()
	for {
		var next *yaml.Node
		for key, value := range entries(section) {
			if sub := subcommand(at, key.Value); sub != nil && value.Kind == yaml.MappingNode {
				if len(path) > 0 && sub.Name() == path[0] {
					next = value
				}
				continue
			}
			found[kebab(key.Value)] = fileSetting{value, key.Line}
		}
		if section = next; section == nil {
			return found
		}
		at, path = subcommand(at, path[0]), path[1:]
	}
}

// set sets a flag from a setting and reports whether the setting has a valid value.
func (c *file) set(f *pflag.Flag, s fileSetting) (done bool) {
	var err error
	list, isList := f.Value.(pflag.SliceValue)
	switch {
	case s.value.Tag == "!!null":
		return false
	case s.value.Kind == yaml.ScalarNode && isList:
		texts := []string{s.value.Value}
		if f.Value.Type() == "stringSlice" {
			texts = strings.Split(s.value.Value, ",")
		}
		err = list.Replace(texts)
	case s.value.Kind == yaml.ScalarNode:
		err = f.Value.Set(s.value.Value)
	case !isList:
		err = errors.New("it takes one value")
	default:
		var texts []string
		if texts, err = textsOf(s.value); err == nil {
			err = list.Replace(texts)
		}
	}
	if err != nil {
		c.add(s.value, fmt.Sprintf("not a valid value for --%s: %v", f.Name, err), "")
	}
	return err == nil
}

// textsOf returns the values of a list, or the entries of a mapping as key=value.
func textsOf(n *yaml.Node) ([]string, error) {
	var texts []string
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			if item = resolved(item); item.Kind != yaml.ScalarNode {
				return nil, errors.New("its items must be plain values")
			}
			texts = append(texts, item.Value)
		}
		return texts, nil
	}
	for key, value := range entries(n) {
		if value.Kind != yaml.ScalarNode {
			return nil, errors.New("its entries must be plain values")
		}
		texts = append(texts, key.Value+"="+value.Value)
	}
	return texts, nil
}

func (c *file) add(at *yaml.Node, message, hint string) {
	c.problems = append(c.problems, &v1.Problem{
		File: c.path, Line: int32(at.Line), Column: int32(at.Column), Message: message, Hint: hint,
	})
}

// err returns all problems of the file, or nil if there is none.
func (c *file) err() error {
	if len(c.problems) == 0 {
		return nil
	}
	return &exit.Error{Code: exit.CodeUsage, Err: c.problems}
}

// entries yields the keys and values of a mapping, or nothing if it is nil.
func entries(mapping *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if mapping == nil {
			return
		}
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(resolved(mapping.Content[i]), resolved(mapping.Content[i+1])) {
				return
			}
		}
	}
}

// resolved returns the target of an alias, or any other node unchanged.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// subcommand returns the direct subcommand of that name, or nil if there is none.
func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

// flagsBelow returns the names of the flags of a command and of its subcommands.
func flagsBelow(cmd *cobra.Command) map[string]bool {
	names := map[string]bool{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && f.Name != Flag {
			names[f.Name] = true
		}
	})
	for _, sub := range cmd.Commands() {
		for name := range flagsBelow(sub) {
			names[name] = true
		}
	}
	return names
}

// kebab returns the flag name for a key: max-parallel for maxParallel.
func kebab(key string) string {
	var b strings.Builder
	for i, r := range key {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
