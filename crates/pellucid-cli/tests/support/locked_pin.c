/* A PKCS#11 module whose PIN is locked: that of the library in PELLUCID_TEST_MODULE, but for C_Login. SoftHSM locks none. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long CK_RV;
#define CKR_PIN_LOCKED 0xA4UL
/* The version, padded to the size of a pointer, and the functions in the order of PKCS #11 v2.40, section 5.1. */
#define FUNCTIONS 69

struct list {
  unsigned char version[8];
  void *functions[FUNCTIONS - 1];
};

static struct list own;

static CK_RV locked(void) { return CKR_PIN_LOCKED; }

CK_RV C_GetFunctionList(struct list **out) {
  void *module = dlopen(getenv("PELLUCID_TEST_MODULE"), RTLD_NOW);
  CK_RV (*get)(struct list **) = module ? (CK_RV(*)(struct list **))dlsym(module, "C_GetFunctionList") : NULL;
  struct list *real;
  if (!get || get(&real)) return 5;
  memcpy(&own, real, sizeof own);
  for (int at = 0; at < FUNCTIONS - 1; at++)
    if (own.functions[at] == dlsym(module, "C_Login")) own.functions[at] = (void *)locked;
  *out = &own;
  return 0;
}
