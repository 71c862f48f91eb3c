"""Pictures of kernels, of how they were learned and of results, in the manner of scikit-learn's displays.

Needs the extra ``plot`` (matplotlib), which is imported when something is drawn.
"""

from .alignment_path import AlignmentPathDisplay
from .comparison import ComparisonDisplay
from .entanglement_spectrum import EntanglementSpectrumDisplay
from .explanation import ExplanationDisplay
from .gram import GramDisplay
from .held_out import HeldOutDisplay
from .information import InformationDisplay
from .projection import ProjectionDisplay
from .running_time import RunningTimeDisplay
from .selection import SelectionDisplay

__all__ = [
    "AlignmentPathDisplay",
    "ComparisonDisplay",
    "EntanglementSpectrumDisplay",
    "ExplanationDisplay",
    "GramDisplay",
    "HeldOutDisplay",
    "InformationDisplay",
    "ProjectionDisplay",
    "RunningTimeDisplay",
    "SelectionDisplay",
]
