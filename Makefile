# The project's commands. GNU make; everything behind them is POSIX sh or bash.
#
#   make demo [DB=path]     encrypt Northwind (or a copy of DB) and look at it
#   make test               build and run every test that belongs to each change
#   make check              formatting, rules between crates and modules, rules of prose, lints, licences
#   make bench              what encryption costs here, with peers and verdict: hours; says how many first
#   make peers              SQLCipher and SQLite3 Multiple Ciphers, for `pellucid lab peers`: minutes; needs libssl-dev and npm
#   make campaign NAME=..   one of the long tests; without NAME, lists them
#   make nightly [HOURS=8]  all of them, the one whose record is oldest first; goes on where the last night ended
#   make nightly-status     where each of them stands
#   make install [PREFIX=/usr/local] [DESTDIR=]
#   make package            a Debian package, a Python wheel and an archive, in target/packages
#   make release [OUT=target/dist]   the same of a commit, built anew bit for bit, with list of contents, checksums and signature
#   make deps               install, or name, what is missing on this machine

SHELL   := /bin/bash
CARGO   ?= $(shell command -v cargo || echo $(HOME)/.cargo/bin/cargo)
PREFIX  ?= /usr/local
DESTDIR ?=
RELEASE := $(or $(PELLUCID_BIN),$(or $(CARGO_TARGET_DIR),target)/release)

.PHONY: help build demo test bench peers check campaign nightly nightly-status install uninstall package release deps build-deps
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

deps:
	@.ci/deps || [ $$? -eq 3 ]

build-deps:
	@.ci/deps build

build: build-deps
	$(CARGO) build --release --workspace --locked
	@.ci/shipped

# Make exports DB, so that any name will do. What `make build` made is used where it is there. Else only the program and the
# library are built, without object stores, in a place of their own: neither is what `make install` installs.
ifneq ($(wildcard $(RELEASE)/lab),)
DEMO := --workspace
DEMO_TARGET := $(dir $(RELEASE))
else
DEMO := -p pellucid-cli -p pellucid-extension --no-default-features
DEMO_TARGET := $(or $(CARGO_TARGET_DIR),target)/demo-build
endif
demo: build-deps
	@echo "Building; the first time takes five minutes on two cores"
	@mkdir -p target
	@build="$(CARGO) build --release --locked $(DEMO) --target-dir $(DEMO_TARGET)"; if [ -t 2 ]; then $$build; else \
	  $$build >target/demo-build.log 2>&1 || { cat target/demo-build.log >&2; exit 1; }; fi
	@$(DEMO_TARGET)/release/pellucid demo --directory target/demo $${DB:+-- "$$DB"}

test:
	@.ci/steps

check:
	@.ci/steps check

bench: deps build
	@lab/bench.sh --estimate
	$(CARGO) bench -p pellucid-lab --locked
	@lab/bench.sh

peers: build
	lab/peers/build.sh

campaign:
	@.ci/campaign $(NAME)

nightly: deps
	@.ci/nightly $(or $(HOURS),8)

nightly-status:
	@.ci/nightly 0

package: deps build
	packaging/deb.sh
	packaging/wheel.sh
	packaging/archive.sh

release: build-deps
	packaging/release.sh $(OUT)

# Programs that ask for keys elsewhere, in a place where only root puts them.
PLUGINS := pkcs11 tpm

# By rename: a library that running programs have mapped is never written to. Builds nothing, so that `sudo make install` needs no Rust and leaves no files of root in target/.
install:
	@for file in pellucid libpellucid.so lab $(addprefix pellucid-plugin-,$(PLUGINS)); do \
	  test -f "$(RELEASE)/$$file" || { echo "install: $(RELEASE)/$$file is missing; run 'make build' first" >&2; exit 1; }; \
	done
	install -D -m 755 "$(RELEASE)/pellucid" "$(DESTDIR)$(PREFIX)/bin/.pellucid.new"
	install -D -m 755 "$(RELEASE)/libpellucid.so" "$(DESTDIR)$(PREFIX)/lib/pellucid/.libpellucid.so.new"
	install -D -m 755 "$(RELEASE)/lab" "$(DESTDIR)$(PREFIX)/lib/pellucid/.lab.new"
	for plugin in $(PLUGINS); do \
	  to="$(DESTDIR)$(PREFIX)/lib/pellucid/plugins" && \
	  install -D -m 755 "$(RELEASE)/pellucid-plugin-$$plugin" "$$to/.pellucid-plugin-$$plugin.new" && \
	  mv -f "$$to/.pellucid-plugin-$$plugin.new" "$$to/pellucid-plugin-$$plugin" || exit; \
	done
	mv -f "$(DESTDIR)$(PREFIX)/lib/pellucid/.libpellucid.so.new" "$(DESTDIR)$(PREFIX)/lib/pellucid/libpellucid.so"
	mv -f "$(DESTDIR)$(PREFIX)/lib/pellucid/.lab.new" "$(DESTDIR)$(PREFIX)/lib/pellucid/lab"
	mv -f "$(DESTDIR)$(PREFIX)/bin/.pellucid.new" "$(DESTDIR)$(PREFIX)/bin/pellucid"
	umask 022 && "$(RELEASE)/pellucid" --quiet manual "$(DESTDIR)$(PREFIX)/share"
	@if command -v python3 >/dev/null; then umask 022 && packaging/documents "$(DESTDIR)$(PREFIX)/share/doc/pellucid"; \
	  else echo "install: there is no python3, so the documents stay in $(CURDIR)" >&2; fi

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/pellucid" "$(DESTDIR)$(PREFIX)/lib/pellucid/libpellucid.so" \
	  "$(DESTDIR)$(PREFIX)/lib/pellucid/lab"
	rm -f $(foreach plugin,$(PLUGINS),"$(DESTDIR)$(PREFIX)/lib/pellucid/plugins/pellucid-plugin-$(plugin)")
	-rmdir "$(DESTDIR)$(PREFIX)/lib/pellucid/plugins"
	-rmdir "$(DESTDIR)$(PREFIX)/lib/pellucid"
	rm -f "$(DESTDIR)$(PREFIX)"/share/man/man1/pellucid*.1 \
	  "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/pellucid" \
	  "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_pellucid" \
	  "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/pellucid.fish"
	rm -rf "$(DESTDIR)$(PREFIX)/share/doc/pellucid"
