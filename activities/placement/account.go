package placement

import (
	"cmp"
	"math"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// account records what a run, an owner of runs, or a group of owners holds of the fleet. It decides
// whose turn it is among requests of the same priority: the account with the lowest level is next,
// first among groups and owners without a group, then among the owners of a group, then among the
// runs of an owner.
//
// The level of an owner or a group is
//
//	(S + U + L) / weight
//
// where S is its dominant share, the largest part of any resource of the fleet that it holds now, U is the
// dominant share of the smallest request that waits, because with few large places an owner of twice the
// weight is next while the place would not give it more than twice as much, and
// L is the exponential moving average of S with a half-life: after dt, L becomes L d + S (1 - d) with
// d = 2^(-dt / half-life). S makes owners who ask at the same time alternate (Ghodsi et al., "Dominant
// Resource Fairness", NSDI 2011), L lets those go first who have used less lately (Kay and Lauder, "A
// Fair Share Scheduler", CACM 31(1), 1988). The level of a run is S alone: if it remembered more, new
// runs would overtake a long one forever.
type account struct {
	name   string
	parent *account // owner of a run, group of an owner, or nil
	isRun  bool
	weight float64
	quota  quantity // what it may hold; 0 of a unit means no limit
	held   quantity
	lately float64   // L at the time at
	at     time.Time // zero if L has never been updated
	turns  map[int32]*turn
	users  int // runs of the placement queue that use it: a run, and the partitions of its fan-outs
}

// accounts holds the accounts of the owners and runs that ask for nodes or hold a place on one.
type accounts struct {
	halfLife time.Duration
	isFIFO   bool // all levels are equal, so the oldest request is next
	total    quantity
	unit     float64 // U
	owners   map[string]*account
	groups   map[string]*account
	runs     map[string]*account // by id of the top-level run of the placement requests
	terms    map[string]Terms
	groupOf  map[string]string // by owner
	// revision changes when owners get other groups, which makes turns outdated.
	revision int
}

// Terms are what an owner, or a group of owners, may use of the fleet.
type Terms struct {
	// Weight is the part that the owner gets relative to others. 0 means 1.
	Weight float64
	// Members are the owners of a group, or nil if the terms are those of a single owner.
	Members []string
	// MaxCores, MaxGPUs and MaxTasks limit what the owner holds at once. 0 means no limit.
	MaxCores, MaxGPUs float64
	MaxTasks          int
}

func newAccounts(halfLife time.Duration, isFIFO bool) *accounts {
	return &accounts{
		halfLife: halfLife, isFIFO: isFIFO,
		owners: map[string]*account{}, groups: map[string]*account{}, runs: map[string]*account{},
	}
}

// ownerOf returns the account of an owner, which it creates if necessary.
func (as *accounts) ownerOf(name string) *account {
	a := as.owners[name]
	if a == nil {
		a = &account{name: name, weight: 1}
		as.owners[name] = a
		as.join(a)
	}
	return a
}

// runOf returns the account of a run, which it creates if necessary.
func (as *accounts) runOf(r Run) *account {
	id := r.ID
	if part, ok := names.ParseFanOutID(id); ok {
		id = part.Run
	}
	a := as.runs[id]
	if a == nil {
		a = &account{name: id, isRun: true, weight: 1, parent: as.ownerOf(r.Owner)}
		as.runs[id] = a
	}
	return a
}

// setTerms replaces all terms.
func (as *accounts) setTerms(terms map[string]Terms, now time.Time) {
	as.terms, as.groupOf = terms, map[string]string{}
	for name, t := range terms {
		for _, member := range t.Members {
			as.groupOf[member] = name
		}
	}
	as.revision++
	for _, a := range as.owners {
		if a.parent != nil {
			a.parent.change(as, now, func(q *quantity) { q.sub(a.held) })
			a.parent = nil
		}
		as.join(a)
		if a.parent != nil {
			a.parent.change(as, now, func(q *quantity) { q.add(a.held) })
		}
	}
}

// join applies the terms of an owner to its account, and adds it to its group.
func (as *accounts) join(a *account) {
	a.apply(as.terms[a.name])
	name, ok := as.groupOf[a.name]
	if !ok {
		return
	}
	g := as.groups[name]
	if g == nil {
		g = &account{name: name}
		as.groups[name] = g
	}
	g.apply(as.terms[name])
	a.parent = g
}

// apply applies terms to an account.
func (a *account) apply(t Terms) {
	a.weight = cmp.Or(t.Weight, 1)
	a.quota = quantity{slotUnit: int64(t.MaxTasks), coreUnit: thousandthsOf(t.MaxCores), gpuUnit: thousandthsOf(t.MaxGPUs)}
}

// exceeds returns whose quota forbids that a run takes more, and which limit, or "" if none does.
func (a *account) exceeds(more quantity) string {
	asks := more[slotUnit] + more[remoteUnit]
	for ; a != nil; a = a.parent {
		text := "quota of " + a.name + ": at most "
		switch limit := &a.quota; {
		case limit[slotUnit] > 0 && a.held[slotUnit]+a.held[remoteUnit]+asks > limit[slotUnit]:
			return text + count(int(limit[slotUnit]), "task") + " at once" + beyond(limit[slotUnit], asks, number(asks))
		case limit[coreUnit] > 0 && more[coreUnit] > 0 && a.held[coreUnit]+more[coreUnit] > limit[coreUnit]:
			return text + cores(limit[coreUnit]) + beyond(limit[coreUnit], more[coreUnit], thousandths(more[coreUnit]))
		case limit[gpuUnit] > 0 && more[gpuUnit] > 0 && a.held[gpuUnit]+more[gpuUnit] > limit[gpuUnit]:
			return text + gpusText(limit[gpuUnit]) + beyond(limit[gpuUnit], more[gpuUnit], thousandths(more[gpuUnit]))
		}
	}
	return ""
}

// beyond returns that a request asks for more than a limit, or "" if it does not. asked is the text for how much.
func beyond(limit, more int64, asked string) string {
	if more <= limit {
		return ""
	}
	return ", and " + asked + " are asked"
}

// level returns the level of an account; the lowest is next.
func (as *accounts) level(a *account, now time.Time) float64 {
	if as.isFIFO {
		return 0
	}
	share := a.held.share(&as.total)
	if a.isRun {
		return share
	}
	return (share + as.unit + as.latelyOf(a, now)) / a.weight
}

// setUnit sets U for the classes of the requests that wait.
func (as *accounts) setUnit(waiting []*requestClass) {
	as.unit = 0
	for _, s := range waiting {
		q := s.need.quantity()
		if share := q.share(&as.total); as.unit == 0 || share < as.unit {
			as.unit = share
		}
	}
}

// isBefore reports whether a is placed before b, which both wait.
func (as *accounts) isBefore(a, b *request, now time.Time) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	if x, y := a.run.account.path(), b.run.account.path(); x != y {
		i := 0
		for x[i] == y[i] {
			i++
		}
		if lx, ly := as.level(x[i], now), as.level(y[i], now); lx != ly {
			return lx < ly
		}
	}
	return a.before(b)
}

// path returns the account of a run with those above it, the topmost first.
func (a *account) path() (path [3]*account) {
	depth := 0
	for p := a.parent; p != nil; p = p.parent {
		depth++
	}
	for ; a != nil; a = a.parent {
		path[depth] = a
		depth--
	}
	return path
}

// latelyOf returns the moving average of an account's dominant share.
func (as *accounts) latelyOf(a *account, now time.Time) float64 {
	dt := now.Sub(a.at)
	if a.at.IsZero() || dt <= 0 {
		return a.lately
	}
	d := math.Exp2(-dt.Seconds() / as.halfLife.Seconds())
	return a.lately*d + a.held.share(&as.total)*(1-d)
}

// change updates the moving average of an account and changes what it holds.
func (a *account) change(as *accounts, now time.Time, change func(*quantity)) {
	if !a.isRun {
		a.lately, a.at = as.latelyOf(a, now), now
	}
	change(&a.held)
}

// hold charges a run, its owner and the owner's group for a claim.
func (as *accounts) hold(a *account, q quantity, now time.Time) {
	for ; a != nil; a = a.parent {
		a.change(as, now, func(held *quantity) { held.add(q) })
	}
}

// release undoes hold.
func (as *accounts) release(a *account, q quantity, now time.Time) {
	for ; a != nil; a = a.parent {
		a.change(as, now, func(held *quantity) { held.sub(q) })
	}
}

// leastUse is the moving average below which an idle account need not be remembered: the use of a
// hundredth of the fleet for a second, an hour ago.
const leastUse = 1e-6

// prune forgets the accounts that ask for nothing, hold nothing, and have used nothing lately.
func (as *accounts) prune(now time.Time) {
	used := map[*account]bool{}
	keep := func(all map[string]*account) {
		for key, a := range all {
			if a.users == 0 && a.held == (quantity{}) && !used[a] && (a.isRun || as.latelyOf(a, now) < leastUse) {
				delete(all, key)
			} else if a.parent != nil {
				used[a.parent] = true
			}
		}
	}
	keep(as.runs)
	keep(as.owners)
	keep(as.groups)
}

// usage returns what all owners and groups hold and have used lately, by name.
func (as *accounts) usage(now time.Time) map[string]*v1.OwnerUse {
	as.prune(now)
	uses := map[string]*v1.OwnerUse{}
	for _, all := range []map[string]*account{as.owners, as.groups} {
		for name, a := range all {
			use := &v1.OwnerUse{
				Held: a.held.share(&as.total), Lately: as.latelyOf(a, now), Running: int32(a.held[slotUnit] + a.held[remoteUnit]),
				Cores: float64(a.held[coreUnit]) / 1000, Gpus: float64(a.held[gpuUnit]) / 1000, MemoryMb: a.held[memoryUnit],
			}
			if a.parent != nil {
				use.Group = a.parent.name
			}
			uses[name] = use
		}
	}
	return uses
}

// addEntitled adds to the use of owners and groups the part of the fleet that each gets while those with tasks have tasks.
func (as *accounts) addEntitled(uses map[string]*v1.OwnerUse) {
	weights := map[string]float64{} // of those with tasks, by group
	isActive := func(use *v1.OwnerUse) bool { return use.GetRunning()+use.GetWaiting() > 0 }
	for name, use := range uses {
		if isActive(use) {
			weights[use.GetGroup()] += as.weightOf(name)
		}
	}
	for name, use := range uses {
		if !isActive(use) {
			continue
		}
		use.Entitled = as.weightOf(name) / weights[use.GetGroup()]
		if group := use.GetGroup(); group != "" {
			use.Entitled *= as.weightOf(group) / weights[""]
		}
	}
}

// weightOf returns the weight of an owner or a group.
func (as *accounts) weightOf(name string) float64 { return cmp.Or(as.terms[name].Weight, 1) }

// restore sets the moving averages of owners and groups that were stored at a time. It ignores
// accounts that have been used since.
func (as *accounts) restore(uses map[string]*v1.OwnerUse, at, now time.Time) {
	for name, use := range uses {
		a := as.groups[name]
		if a == nil {
			a = as.ownerOf(name)
		}
		if a.lately == 0 {
			a.lately, a.at = use.GetLately()*math.Exp2(-max(0, now.Sub(at).Seconds())/as.halfLife.Seconds()), now
		}
	}
}
