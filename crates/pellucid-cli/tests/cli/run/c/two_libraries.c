/* Two modules, each with a SQLite of its own, loaded as Python loads its modules. */
#include <dlfcn.h>
#include <stdio.h>
typedef int (*open_fn)(const char *, void **);
static open_fn module(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) { puts(dlerror()); return 0; }
  return (open_fn)dlsym(handle, "plugin_open");
}
int main(int count, char **words) {
  void *db;
  for (int i = 1; i < count; i++) {
    open_fn open = module(words[i]);
    if (!open) return 1;
  }
  for (int i = 1; i < count; i++) printf("%d\n", module(words[i])("app.db", &db));
  return 0;
}
