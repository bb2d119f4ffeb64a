package web

import (
	"encoding/json"
	"net/http"
)

// writeJSON answers the script.
func writeJSON(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(data) // an error means that the browser has gone
}
