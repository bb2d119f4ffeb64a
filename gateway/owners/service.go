package owners

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"

	"connectrpc.com/connect"

	"switchyard/activities/owners"
	"switchyard/gateway/auth"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// defaultPage is the page size of a request without one.
const defaultPage = 1000

// Service implements OwnerService. It is safe for concurrent use.
type Service struct{ Owners *owners.Owners }

var _ switchyardv1connect.OwnerServiceHandler = Service{}

// SetOwner sets the share and the quota of an owner or a group.
func (s Service) SetOwner(ctx context.Context, req *connect.Request[v1.SetOwnerRequest]) (*connect.Response[v1.SetOwnerResponse], error) {
	owner, err := s.Owners.Set(ctx, req.Msg.GetName(), req.Msg.GetShare(), req.Msg.GetQuota(), auth.From(ctx).Name)
	if errors.Is(err, owners.ErrInvalid) {
		return nil, rpcerror.Invalid("%w", err)
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.SetOwnerResponse{Owner: owner}), nil
}

// ListOwners lists the owners and groups with what they use.
func (s Service) ListOwners(ctx context.Context, req *connect.Request[v1.ListOwnersRequest]) (*connect.Response[v1.ListOwnersResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	var first string // name of the first owner of the page
	if token := req.Msg.GetPageToken(); token != "" {
		if first, _, err = pages.Place(token); err != nil {
			return nil, err
		}
	}
	all, warnings, err := s.Owners.List(ctx)
	if err != nil {
		return nil, err
	}
	use, err := s.Owners.Use(ctx)
	if err != nil {
		return nil, err
	}
	all = withUse(all, use.GetOwners())
	all = all[sort.Search(len(all), func(i int) bool { return all[i].GetName() >= first }):]
	limit := cmp.Or(int(req.Msg.GetPageSize()), defaultPage)
	res := &v1.ListOwnersResponse{Items: all[:min(len(all), limit)], Warnings: warnings, UsedAt: use.GetAt()}
	if len(all) > limit {
		res.NextPageToken = pages.Token(all[limit].GetName(), "")
	}
	return connect.NewResponse(res), nil
}

// withUse adds what owners use to those with terms, and returns all of them by name.
func withUse(all []*v1.Owner, uses map[string]*v1.OwnerUse) []*v1.Owner {
	known := map[string]bool{}
	for _, owner := range all {
		owner.Use = uses[owner.GetName()]
		known[owner.GetName()] = true
	}
	for name, use := range uses {
		if !known[name] {
			all = append(all, &v1.Owner{Name: name, Use: use})
		}
	}
	slices.SortFunc(all, func(a, b *v1.Owner) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all
}
