package mfa

import "net/http"

// Nobody here has a security key.
func (*Handler) handleWebAuthn(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

func (*Handler) handleWebAuthnRegisterBegin(w http.ResponseWriter, r *http.Request) {
	http.NotFound(w, r)
}

func (*Handler) handleWebAuthnRegisterFinish(w http.ResponseWriter, r *http.Request) {
	http.NotFound(w, r)
}

func (*Handler) handleWebAuthnLoginBegin(w http.ResponseWriter, r *http.Request) {
	http.NotFound(w, r)
}

func (*Handler) handleWebAuthnLoginFinish(w http.ResponseWriter, r *http.Request) {
	http.NotFound(w, r)
}
