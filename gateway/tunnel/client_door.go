package tunnel

import (
	"net/http"

	"switchyard/gateway/auth"
)

// Sessions serves connections of clients. The caller must put it behind authentication.
func (h *Hub) Sessions() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.refuseObserver(); err != nil {
			auth.Refuse(w, r, err)
			return
		}
		leave, err := h.enterClient()
		if err != nil {
			auth.Refuse(w, r, err)
			return
		}
		defer leave()
		session, err := accept(w, r)
		if err != nil {
			return
		}
		h.joinAll(WithAddress(r.Context(), r.RemoteAddr), r.Context(), session, h.Open)
	})
}
