/* Prices of bringing a version back (ways_back.h): a recompute's is that of the chain of writers that it runs. */
#include "planner/choose/ways_back.h"

#include "planner/choose/restorable.h"
#include "util/math.h"

int64_t pl_fetch_ns(const planc_link links[PLANC_N_ROUTES], const planc_trace *trace, int32_t buffer) {
  const planc_link *link = &links[PLANC_ROUTE_H2D];
  const planc_buffer *it = &trace->buffers[buffer];
  if (it->peer < 0) return planc_link_ns(link, it->bytes);
  return pl_mul_saturate(planc_link_ns(link, trace->buffers[it->peer].bytes), trace->jobs[it->job].replicas - 1);
}

int64_t pl_offload_ns(const planc_link links[PLANC_N_ROUTES], const planc_trace *trace, int32_t buffer) {
  return planc_link_ns(&links[PLANC_ROUTE_D2H], trace->buffers[buffer].bytes);
}

pl_price pl_price_of_link(const pl_walk *walk, int32_t buffer, int32_t version) {
  const planc_buffer *it = &walk->trace->buffers[buffer];
  pl_price price = {.link_ns[PLANC_ROUTE_H2D] = pl_fetch_ns(walk->links, walk->trace, buffer)};
  if (planc_user_holds(it, version)) return price;
  price.link_ns[PLANC_ROUTE_D2H] = pl_offload_ns(walk->links, walk->trace, buffer);
  price.host_bytes = pl_walk_bytes(it);
  return price;
}

bool pl_host_has_room(const pl_walk *walk, int64_t taken, const pl_price *price) {
  return price->host_bytes <= walk->host_room - taken;
}

planc_status pl_ways_back_make(const pl_walk *walk, const int64_t *start, pl_arena *arena, pl_ways_back *out) {
  const planc_trace *trace = walk->trace;
  *out = (pl_ways_back){.walk = walk, .start = start};
  PLANC_TRY(PL_NEW(arena, &out->latest, trace->n_instances));
  PLANC_TRY(PL_NEW(arena, &out->visited, trace->n_instances));
  PLANC_TRY(PL_NEW(arena, &out->stack, (int64_t)trace->n_accesses + 1));
  return pl_mark_restorable(walk->order, PL_KEPT_NOTHING, arena, out->latest);
}

bool pl_way_is_open(const pl_ways_back *ways, pl_way way, int32_t buffer) {
  if (way == PL_WAY_LINK) return ways->walk->swaps;
  return way == PL_WAY_RECOMPUTE && ways->walk->recomputes && pl_can_drop(ways->walk->order, ways->latest, buffer);
}

/* An instance of the chain that is run again, and what is read by it. False where something of that is lost. */
static bool add_instance(pl_ways_back *ways, int32_t instance, const pl_wanted *wanted, pl_source_rule rule,
                         const void *context, int32_t *depth, pl_price *price) {
  const pl_walk *walk = ways->walk;
  const planc_instance *in = &walk->trace->instances[instance];
  int32_t at = walk->order->first[instance];
  price->compute_ns = pl_add_saturate(price->compute_ns, ways->start[at + 1] - ways->start[at]);
  for (int32_t a = in->first_access; rule && a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &walk->trace->accesses[a];
    if (access->read < 0 || access->effect) continue;
    pl_source source = rule(context, wanted, access);
    if (source == PL_SOURCE_LOST) return false;
    int64_t *in_ns = &price->link_ns[PLANC_ROUTE_H2D];
    if (source == PL_SOURCE_HOST)
      *in_ns = pl_add_saturate(*in_ns, pl_fetch_ns(walk->links, walk->trace, access->buffer));
    if (source == PL_SOURCE_AGAIN) ways->stack[(*depth)++] = pl_writer_of(walk->trace, access->buffer, access->read);
  }
  return true;
}

pl_price pl_price_of_recompute(pl_ways_back *ways, const pl_wanted *wanted, int64_t limit_ns, pl_source_rule rule,
                               const void *context) {
  pl_price price = {.compute_ns = 0};
  int32_t depth = 0;
  ways->chain++;
  ways->stack[depth++] = pl_writer_of(ways->walk->trace, wanted->buffer, wanted->version);
  while (depth > 0 && pl_price_ns(&price) <= limit_ns) {
    int32_t instance = ways->stack[--depth];
    if (instance < 0 || ways->visited[instance] == ways->chain) continue;
    ways->visited[instance] = ways->chain;
    if (!add_instance(ways, instance, wanted, rule, context, &depth, &price))
      return (pl_price){.compute_ns = PL_NO_WAY};
  }
  return price;
}

int64_t pl_price_ns(const pl_price *price) {
  int64_t sum = price->compute_ns;
  for (int r = 0; r < PLANC_N_ROUTES; r++) sum = pl_add_saturate(sum, price->link_ns[r]);
  return sum;
}

int64_t pl_saving_per_second(int64_t bytes, const pl_price *price) {
  int64_t ns = pl_price_ns(price);
  return pl_muldiv_floor(bytes, PL_NS, ns > 0 ? ns : 1);
}
