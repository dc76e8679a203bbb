"""Diagrams of the flow of data: boxes and arrows with shapes on the arrows, one or two to a lesson.

    from helpers import plots
    plots.diagrams.three_roles()

Each function returns a sheet, which a notebook shows when it is the last line of a cell. The alternative text is in it.
"""

from .attending import heads_flow, mask_flow, one_output_row, positions_flow, scaling_flow, three_roles
from .bands_and_tiles import band_chunks, tiles_arriving, tiles_in_memory
from .before_transformers import gated_cell, two_readers, vector_or_memory, waiting_steps
from .bert_flow import bert_flow
from .cheaper import speculative_round
from .drawing import Sheet
from .inside import head_circuits, induction_circuit
from .large import ways_to_divide, zero_shares
from .models import (
    block_norms,
    cache_growing,
    classifier_flow,
    encoder_decoder_flow,
    gpt2_flow,
    merges_in_two_orders,
    teacher_forcing,
    teaching_and_writing,
)
from .remembering import segment_memory, shift_steps
from .since import experts_flow, grouped_queries, llama_block, pairs_and_halves
