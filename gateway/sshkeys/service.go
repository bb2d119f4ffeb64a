package sshkeys

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"connectrpc.com/connect"
	"golang.org/x/crypto/ssh"

	"switchyard/gateway/auth"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/sshkey"
)

const (
	// maxComment bounds the comment of a key, in bytes.
	maxComment  = 200
	defaultPage = 1000
)

// Service implements KeyService. It is safe for concurrent use.
type Service struct {
	Registry *Registry
}

var _ switchyardv1connect.KeyServiceHandler = Service{}

// AddKey adds a key for the caller.
func (s Service) AddKey(ctx context.Context, req *connect.Request[v1.AddKeyRequest]) (*connect.Response[v1.AddKeyResponse], error) {
	key, comment, err := parse(req.Msg.GetPublicKey())
	if err != nil {
		return nil, err
	}
	added, err := s.Registry.Add(ctx, auth.From(ctx), key, comment)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.AddKeyResponse{Key: added}), nil
}

// parse returns the only key in a text with its comment. Errors never quote the text, which may be a private key.
func parse(text string) (ssh.PublicKey, string, error) {
	keys, fault := sshkey.Parse(text)
	if fault != nil {
		reason := "the text " + fault.Reason
		if fault.Hint != "" {
			reason += "; " + fault.Hint
		}
		return nil, "", rpcerror.Invalid("%s", reason)
	}
	if len(keys) > 1 {
		return nil, "", rpcerror.Invalid("the text holds %d keys; add one at a time", len(keys))
	}
	_, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, "", rpcerror.Invalid("the text is not a public key")
	}
	comment = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, comment)
	if len(comment) > maxComment {
		comment = strings.ToValidUTF8(comment[:maxComment], "")
	}
	return keys[0], comment, nil
}

// CheckRecord returns an error unless a key from another deployment is one that AddKey could have stored. locked is set if
// authentication is on here: while it is off, every caller is an admin, and could store a key that gives it a role later.
func CheckRecord(k *v1.Key, locked bool) error {
	key, _, err := parse(k.GetPublicKey())
	switch role := v1.ParseRole(k.GetRole()); {
	case err != nil:
		return err
	case k.GetFingerprint() != ssh.FingerprintSHA256(key) || k.GetType() != key.Type():
		return rpcerror.Invalid("key %.64q of %s is not the one in its publicKey", k.GetFingerprint(), k.GetName())
	case !v1.Role_ROLE_ADMIN.Includes(role) || !role.Includes(v1.Role_ROLE_USER):
		return rpcerror.Invalid("key %s of %s has the role %q; it must be user, operator or admin", k.GetFingerprint(), k.GetName(), k.GetRole())
	case len(k.GetComment()) > maxComment:
		return rpcerror.Invalid("the comment of key %s of %s is longer than %d bytes", k.GetFingerprint(), k.GetName(), maxComment)
	case !locked && k.GetName() != "" && !strings.HasSuffix(k.GetName(), auth.Unverified):
		return rpcerror.WrongState("key %s belongs to %s, and this gateway verifies no name; start it with --auth tokens, or leave the keys out", k.GetFingerprint(), k.GetName())
	}
	return nil
}

// mayChange reports whether a principal may manage a key: its own, or any key as an admin. If authentication is off, every
// caller is an admin.
func mayChange(p *auth.Principal, k *v1.Key) bool {
	return p.Role.Includes(v1.Role_ROLE_ADMIN) || p.IsVerified() && p.Name == k.GetName()
}

// ListKeys lists the keys that the caller may remove.
func (s Service) ListKeys(ctx context.Context, req *connect.Request[v1.ListKeysRequest]) (*connect.Response[v1.ListKeysResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	var name, fingerprint string // of the first key of the page
	if token := req.Msg.GetPageToken(); token != "" {
		if name, fingerprint, err = pages.Place(token); err != nil {
			return nil, err
		}
	}
	all, warnings, err := s.Registry.List(ctx)
	if err != nil {
		return nil, err
	}
	if !mayChange(auth.From(ctx), nil) { // the keys may be those of others
		warnings = nil
	}
	all = slices.DeleteFunc(all, func(k *v1.Key) bool { return !mayChange(auth.From(ctx), k) })
	limit := cmp.Or(int(req.Msg.GetPageSize()), defaultPage)
	all = all[sort.Search(len(all), func(i int) bool {
		return cmp.Or(cmp.Compare(all[i].GetName(), name), cmp.Compare(all[i].GetFingerprint(), fingerprint)) >= 0
	}):]
	res := &v1.ListKeysResponse{Items: all[:min(len(all), limit)], Warnings: warnings}
	if len(all) > limit {
		res.NextPageToken = pages.Token(all[limit].GetName(), all[limit].GetFingerprint())
	}
	return connect.NewResponse(res), nil
}

// RemoveKey removes a key.
func (s Service) RemoveKey(ctx context.Context, req *connect.Request[v1.RemoveKeyRequest]) (*connect.Response[v1.RemoveKeyResponse], error) {
	sum, ok := parseFingerprint(req.Msg.GetFingerprint())
	if !ok {
		return nil, rpcerror.Invalid("%.64q is not a fingerprint such as SHA256:Jx8F...; `switchyard keys list` shows them", req.Msg.GetFingerprint())
	}
	k, err := s.find(ctx, sum, req.Msg.GetName())
	if err != nil {
		return nil, err
	}
	if err := s.Registry.Remove(ctx, k); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.RemoveKeyResponse{Key: k}), nil
}
