package web

import (
	"encoding/json"
	"net/http"
)

// writeJSON writes a JSON response for the script.
func writeJSON(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(data) // fails only if the browser has left
}
