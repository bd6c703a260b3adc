/* Changes of a plan's tables (mutate.h). */
#include <stdio.h>

#include "plan/derived.h"
#include "tests/support/mutate_parts.h"

static planc_status change_boundary(mutation *m) {
  planc_boundary *boundary;
  PLANC_TRY(pl_arena_copy(arena_of(m), m->plan->boundary, m->plan->n_boundary, sizeof *boundary, (void *)&boundary));
  planc_boundary *row = &boundary[below(m, m->plan->n_boundary)];
  int64_t draw = below(m, 5);
  if (draw == 0) {
    row->memory = other_id(m, row->memory, m->plan->n_memories);
  } else if (draw <= 2) {
    row->address = other_number(m, row->address, &m->sections[0]);
  } else {
    row->buffer = other_id(m, row->buffer, row->buffer + 1);
  }
  m->plan->boundary = boundary;
  snprintf(m->description, m->size, "change the boundary: buffer %d in memory %d at %lld", row->buffer, row->memory,
           (long long)row->address);
  return NULL;
}

static const planc_memory *mapped_memory(const planc_plan *plan, int32_t mapping) {
  for (int32_t i = 0; i < plan->n_memories; i++) {
    const planc_memory *memory = &plan->memories[i];
    if (mapping >= memory->first_mapping && mapping < memory->first_mapping + memory->n_mappings) return memory;
  }
  return plan->memories;
}

static planc_status change_mapping(mutation *m) {
  planc_mapping *mappings;
  PLANC_TRY(pl_arena_copy(arena_of(m), m->plan->mappings, m->plan->n_mappings, sizeof *mappings, (void *)&mappings));
  int32_t k = (int32_t)below(m, m->plan->n_mappings);
  const planc_memory *memory = mapped_memory(m->plan, k);
  if (below(m, 3)) {
    mappings[k].first = below(m, memory->arena_bytes / memory->chunk_bytes + 1);
  } else {
    mappings[k].n += below(m, 2) ? 1 : -1;
  }
  m->plan->mappings = mappings;
  snprintf(m->description, m->size, "change mapping %d: %lld chunks from %lld on", k, (long long)mappings[k].n,
           (long long)mappings[k].first);
  return NULL;
}

static void change_chunks(mutation *m, planc_memory *memory) {
  switch (below(m, 4)) {
    case 0:
      memory->chunk_bytes = below(m, 2) ? memory->chunk_bytes * 2 : memory->chunk_bytes / 2;
      return;
    case 1:
      memory->chunk_bytes = memory->chunk_bytes ? 0 : PLANC_ALIGNMENT;
      return;
    case 2:
      memory->first_mapping += below(m, 2) ? 1 : -1;
      return;
    default:
      memory->n_mappings += below(m, 2) ? 1 : -1;
  }
}

static planc_status change_memory(mutation *m) {
  static const int64_t alignments[] = {-256, 0, 1, 128, 300, 512, 768, 1024, 4096};
  planc_memory *memories;
  PLANC_TRY(pl_arena_copy(arena_of(m), m->plan->memories, m->plan->n_memories, sizeof *memories, (void *)&memories));
  planc_memory *memory = &memories[below(m, m->plan->n_memories)];
  switch (below(m, 8)) {
    case 0:
      memory->kind = (planc_memory_kind)other_id(m, (int32_t)memory->kind, PLANC_N_MEMORY_KINDS - 1);
      break;
    case 1:
      memory->gpu = other_id(m, memory->gpu, planc_plan_gpus(m->plan));
      break;
    case 2:
      memory->budget_bytes = other_number(m, memory->budget_bytes, &m->sections[1]);
      break;
    case 3:
      memory->alignment = alignments[below(m, sizeof alignments / sizeof *alignments)];
      break;
    case 4:
      memory->reserved_bytes = other_number(m, memory->reserved_bytes, &m->sections[1]);
      break;
    case 5:
      change_chunks(m, memory);
      break;
    default:
      memory->arena_bytes -= 1 + below(m, 256);
  }
  m->plan->memories = memories;
  pl_plan_find_peaks(m->plan);
  snprintf(m->description, m->size,
           "change memory %d: kind %d, GPU %d, budget %lld, reserved %lld, arena %lld, align %lld, chunk %lld, %d "
           "mappings from %d on",
           (int)(memory - memories), memory->kind, memory->gpu, (long long)memory->budget_bytes,
           (long long)memory->reserved_bytes, (long long)memory->arena_bytes, (long long)memory->alignment,
           (long long)memory->chunk_bytes, memory->n_mappings, memory->first_mapping);
  return NULL;
}

/* One of a link's numbers is another, or one link takes the place of another. What copies cost is free. */
static planc_status change_link(mutation *m) {
  planc_plan_link *links;
  PLANC_TRY(pl_arena_copy(arena_of(m), m->plan->links, m->plan->n_links, sizeof *links, (void *)&links));
  planc_plan_link *link = &links[below(m, m->plan->n_links)];
  switch (below(m, 5)) {
    case 0:
      link->from = other_id(m, link->from, m->plan->n_memories);
      break;
    case 1:
      link->to = other_id(m, link->to, m->plan->n_memories);
      break;
    case 2:
      link->engine = other_id(m, link->engine, m->plan->n_links);
      break;
    case 3:
      link->bus = other_id(m, link->bus, m->plan->n_links);
      break;
    default:
      *link = links[below(m, m->plan->n_links)];
  }
  m->plan->links = links;
  snprintf(m->description, m->size, "change link %d: from %d to %d, engine %d, bus %d", (int)(link - links), link->from,
           link->to, link->engine, link->bus);
  return NULL;
}

static planc_status change_stream(mutation *m) {
  planc_stream *streams;
  PLANC_TRY(pl_arena_copy(arena_of(m), m->plan->streams, m->plan->n_streams, sizeof *streams, (void *)&streams));
  planc_stream *stream = &streams[below(m, m->plan->n_streams)];
  switch (below(m, 4)) {
    case 0:
      stream->kind = stream->kind == PLANC_STREAM_KIND_compute ? PLANC_STREAM_KIND_copy : PLANC_STREAM_KIND_compute;
      break;
    case 1:
      stream->job = other_id(m, stream->job, m->plan->n_jobs);
      break;
    default:
      stream->on =
          other_id(m, stream->on, stream->kind == PLANC_STREAM_KIND_compute ? m->plan->n_memories : m->plan->n_links);
  }
  m->plan->streams = streams;
  snprintf(m->description, m->size, "change stream %d: kind %d of job %d on %d", (int)(stream - streams), stream->kind,
           stream->job, stream->on);
  return NULL;
}

/* How many replicas there are, of one job or of all. */
static planc_status change_replicas(mutation *m) {
  planc_job *jobs;
  int64_t j = below(m, m->plan->n_jobs);
  PLANC_TRY(pl_arena_copy(arena_of(m), m->plan->jobs, m->plan->n_jobs, sizeof *jobs, (void *)&jobs));
  m->plan->jobs = jobs;
  jobs[j].replicas = other_id(m, jobs[j].replicas, 4);
  for (int32_t k = 0; below(m, 2) && k < m->plan->n_jobs; k++) jobs[k].replicas = jobs[j].replicas;
  snprintf(m->description, m->size, "change job %d to %d replicas", (int)j, jobs[j].replicas);
  return NULL;
}

static planc_status change_counts(mutation *m) {
  planc_plan *plan = m->plan;
  switch (below(m, 6)) {
    case 0:
      plan->n_residencies += below(m, 2) ? 1 : -1;
      break;
    case 1:
      plan->n_events -= 1;
      break;
    case 2:
      plan->n_memories -= 1;
      break;
    case 3:
      plan->n_links -= 1;
      break;
    case 4:
      plan->n_streams -= 1;
      break;
    default:
      if (plan->n_boundary > 0) {
        plan->n_boundary -= 1;
      } else {
        plan->n_jobs = 0;
      }
  }
  snprintf(m->description, m->size,
           "change a count: %d residencies, %d events, %d memories, %d links, %d streams, %d boundary rows, %d jobs",
           plan->n_residencies, plan->n_events, plan->n_memories, plan->n_links, plan->n_streams, plan->n_boundary,
           plan->n_jobs);
  return NULL;
}

planc_status mutate_tables(mutation *m) {
  if (m->plan->n_mappings > 0 && below(m, 2)) return change_mapping(m);
  if (planc_plan_replicas(m->plan) > 1 && below(m, 4) == 0) return change_replicas(m);
  switch (below(m, 6)) {
    case 0:
      return change_memory(m);
    case 1:
      return change_link(m);
    case 2:
      return change_stream(m);
    case 3:
      return change_counts(m);
    default:
      return m->plan->n_boundary > 0 ? change_boundary(m) : change_memory(m);
  }
}
