/* Memory in regions (Zico, 6.3): an owner is a job's tensors of one class. It takes whole regions out of the free list
 * of all owners and puts its tensors into them. It gives a region back when the last tensor in it is gone. What is
 * larger than a region takes several that lie behind each other. */
#ifndef PLANC_COLOCATE_REGIONS_H
#define PLANC_COLOCATE_REGIONS_H

#include "planner/memory/free_list.h"

typedef struct pl_regions {
  int64_t region_bytes; /* 0: tensors are taken from the common list one by one */
  int64_t capacity;     /* in whole regions */
  pl_free_list common;  /* of all owners; what is beyond the capacity is nobody's */
  int32_t n_owners;
  pl_free_list *owners; /* by owner: what its regions have free */
  int64_t *held;        /* by owner: bytes of its regions */
  int64_t *used;        /* by region: bytes of tensors in it */
} pl_regions;

/* Regions behind each other from address 0 on, as many as `capacity` has whole ones. Freed with pl_regions_free, also
 * after a failure. */
planc_status pl_regions_init(pl_regions *regions, int32_t n_owners, int64_t region_bytes, int64_t capacity);
void pl_regions_free(pl_regions *regions);
/* The lowest place, or the highest: two jobs that begin at both ends leave less between them that is of no use.
 * *out_address is -1 where no regions are left. */
planc_status pl_regions_take(pl_regions *regions, int32_t owner, bool high, int64_t bytes, int64_t *out_address);
planc_status pl_regions_give(pl_regions *regions, int32_t owner, int64_t address, int64_t bytes);

#endif
