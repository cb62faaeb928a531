// As the CUDA toolkit's stubs folder has it: every function is there, and none works.
#define STUB_LIBRARY 34
#define FUNCTION(name) \
  int name(void) { return STUB_LIBRARY; }
#include "functions.h"
FUNCTION(cuGetErrorName)
