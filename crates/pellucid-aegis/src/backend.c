/* One implementation of AEGIS-256X4: SOURCE is libaegis's file, BACKEND the name of ours, STACK_BYTES what a call may leave
 * on the stack.
 *
 * Only sealing and opening are called here. libaegis's table of all its functions is linked by nobody, so that the linker
 * leaves it out with them. */
#include "names.h"
#include SOURCE

#define JOINED(backend, what) pellucid_aegis_##backend##_##what
#define EXPANDED(backend, what) JOINED(backend, what)
#define NAME(what) EXPANDED(BACKEND, what)
#define APART __attribute__((noinline))

/* Overwrites the stack that the call before used: parts of the key may lie there, and core dumps have the stack. */
static APART void
forget(void)
{
    uint8_t stack[STACK_BYTES];

    memset(stack, 0, sizeof stack);
    __asm__ volatile("" : : "r"(stack) : "memory");
}

static APART void
seal(uint8_t *c, uint8_t *mac, const uint8_t *m, size_t mlen, const uint8_t *ad, size_t adlen, const uint8_t *npub,
     const uint8_t *k)
{
    (void) encrypt_detached(c, mac, 16, m, mlen, ad, adlen, npub, k);
}

static APART int
open(uint8_t *m, const uint8_t *c, size_t clen, const uint8_t *mac, const uint8_t *ad, size_t adlen, const uint8_t *npub,
     const uint8_t *k)
{
    return decrypt_detached(m, c, clen, mac, 16, ad, adlen, npub, k);
}

void
NAME(seal)(uint8_t *c, uint8_t *mac, const uint8_t *m, size_t mlen, const uint8_t *ad, size_t adlen, const uint8_t *npub,
           const uint8_t *k)
{
    seal(c, mac, m, mlen, ad, adlen, npub, k);
    forget();
}

int
NAME(open)(uint8_t *m, const uint8_t *c, size_t clen, const uint8_t *mac, const uint8_t *ad, size_t adlen,
           const uint8_t *npub, const uint8_t *k)
{
    const int wrong = open(m, c, clen, mac, ad, adlen, npub, k);

    forget();
    return wrong;
}

/* Opens without a look at the tag. Tests call it that take authentication away; nothing that is released links it. */
void
NAME(open_unchecked)(uint8_t *m, const uint8_t *c, size_t clen, const uint8_t *ad, size_t adlen, const uint8_t *npub,
                     const uint8_t *k)
{
    aegis256x4_state state;

    state_init(&state, ad, adlen, npub, k);
    (void) state_decrypt_update(&state, m, c, clen);
}
