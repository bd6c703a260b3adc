/* Parts of pages: an item's first bytes may be the last of a page, and its last bytes the first of one, where other
 * items have the rest, so that hardly anything is lost inside pages (paged_places.h). */
#ifndef PLANC_MEMORY_PAGE_PARTS_H
#define PLANC_MEMORY_PAGE_PARTS_H

#include "planner/memory/page_takings.h"

/* Where an item lies: on the last `head` bytes of a page, whole pages, and the first `tail` bytes of a page. */
typedef struct pl_page_split {
  int64_t head, tail, n_whole;
  int32_t head_page, tail_page; /* PL_NO_PAGE = another whole page is to be parted for its tail */
} pl_page_split;

/* The bytes at both ends of a page that are free for an item, where some between them are taken. */
typedef struct pl_page_part {
  int64_t at_first, at_last;
  int32_t page, number; /* among the parted pages */
} pl_page_part;

/* A zeroed one has parted no page. */
typedef struct pl_page_parts {
  pl_page_list parted;     /* pages that items have had parts of */
  VEC(pl_page_part) parts; /* of them, what is free for the item that is looked at, by `at_first` */
} pl_page_parts;
void pl_page_parts_free(pl_page_parts *parts);

/* The split of an item that takes the fewest whole pages. */
planc_status pl_page_parts_split(pl_page_parts *parts, const pl_page_takings *takings, const pl_item *item,
                                 pl_page_split *out);
/* How many whole pages it takes, with the one that is parted. */
int64_t pl_page_split_whole(const pl_page_split *split);
/* The last of the whole pages of a split is parted where no other has room for its tail. */
planc_status pl_page_parts_part(pl_page_parts *parts, pl_page_split *split, pl_page_list *whole);
/* Takes the parts of a split while the item lives. */
planc_status pl_page_split_take(const pl_page_split *split, const pl_item *item, pl_page_takings *takings);

#endif
