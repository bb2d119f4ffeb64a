package doctor

import (
	"context"
	"slices"
	"time"
)

// checkTimeout bounds a check.
const checkTimeout = 20 * time.Second

// check is one check of a role.
type check struct {
	name string
	run  func(context.Context) []Finding
}

// Examine runs the checks of the roles and then those of the machine.
func Examine(ctx context.Context, around Surroundings, roles []Settings) []Finding {
	var found []Finding
	for _, role := range roles {
		e := &examination{Settings: role, Surroundings: around}
		found = append(found, runChecks(ctx, role.Role, e.checks())...)
		e.close()
	}
	return append(found, runChecks(ctx, RoleMachine, machineChecks(roles))...)
}

func runChecks(ctx context.Context, role string, checks []check) []Finding {
	var found []Finding
	for _, c := range checks {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		for _, f := range c.run(ctx) {
			f.Role, f.Check = role, c.name
			found = append(found, f)
		}
		cancel()
	}
	return found
}

// one returns the run function of a check with one finding.
func one(f func(context.Context) Finding) func(context.Context) []Finding {
	return func(ctx context.Context) []Finding { return []Finding{f(ctx)} }
}

// checks returns the checks of a role, in the order in which a person would mend what they find.
func (e *examination) checks() []check {
	files := []check{{"certificates", e.checkCertificates}, {"private-files", e.checkPrivateFiles}}
	server := []check{{"settings", one(e.checkSettings)}, {"temporal", one(e.checkTemporal)}}
	access := []check{{"gateway", e.checkGateways}, {"token", one(e.checkToken)}}
	fleet := []check{{"clock", one(e.checkClock)}, {"versions", one(e.checkVersions)}}
	switch e.Role {
	case RoleGateway:
		own := []check{{"search-attributes", one(e.checkAttributes)}, {"store", e.checkStores}, {"ports", e.checkPorts}}
		return slices.Concat(server, own, fleet, files)
	case RoleWorker:
		machine := []check{{"cgroups", one(checkCgroups)}, {"engine", one(checkEngine)}, {"gpus", one(e.checkGPUs)}, {"virtual-machines", one(checkQEMU)}}
		return slices.Concat(server, access, []check{{"store", e.checkStores}, {"ports", e.checkPorts}}, fleet, files, machine)
	}
	return slices.Concat(access, fleet, files)
}

// machineChecks returns the checks of what all roles of this machine share.
func machineChecks(roles []Settings) []check {
	serves := slices.ContainsFunc(roles, func(s Settings) bool { return s.Role != RoleClient })
	if !serves {
		return nil
	}
	var folders []Folder
	for _, role := range roles {
		folders = append(folders, role.Folders...)
	}
	return []check{
		{"open-files", one(func(context.Context) Finding { return checkOpenFiles() })},
		{"disk", func(ctx context.Context) []Finding { return checkDisks(ctx, folders) }},
	}
}
