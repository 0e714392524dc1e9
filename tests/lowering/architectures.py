"""Networks as PyTorch users write them, with GridSample and AffineGrid in them.

They are small, and random instead of trained, but wired as published: the sampler's grid comes from the network
itself, leaves the image here and there, and what is sampled goes on into further layers.
PyTorch is imported when a network is built, so that a test can name the networks where it is not installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lowering.warping import integrated, normalized, pixel_positions, unet, warp

if TYPE_CHECKING:
    from torch import Tensor, nn

    Built: TypeAlias = tuple[nn.Module, tuple[Tensor, ...]]
    """A module and example arguments."""


def spatial_transformer() -> Built:
    """Classifier of digits with a spatial transformer in front.

    Source: M. Jaderberg et al., *Spatial Transformer Networks*, 2015; the tutorial of PyTorch of that name.
    """
    import torch
    from torch import nn
    from torch.nn.functional import affine_grid, grid_sample, log_softmax

    class SpatialTransformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            theta = nn.Linear(32, 6)
            self.localization = nn.Sequential(
                *(nn.Conv2d(1, 8, 7), nn.MaxPool2d(2), nn.ReLU()),
                *(nn.Conv2d(8, 10, 5), nn.MaxPool2d(2), nn.ReLU()),
                *(nn.Flatten(), nn.Linear(90, 32), nn.ReLU(), theta),
            )
            self.classifier = nn.Sequential(
                *(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU()),
                *(nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU()),
                *(nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10)),
            )
            theta.bias.data = torch.tensor([1.1, 0.3, 0, -0.2, 1, 0.1])

        def forward(self, x: Tensor) -> Tensor:
            theta = self.localization(x).view(-1, 2, 3)
            grid = affine_grid(theta, list(x.shape), align_corners=False)
            return log_softmax(self.classifier(grid_sample(x, grid, align_corners=False)), 1)

    return SpatialTransformer(), (torch.randn(3, 1, 28, 28),)


def registration_2d() -> Built:
    """Diffeomorphic registration of a moving image to a fixed one.

    Source: G. Balakrishnan et al., *VoxelMorph: A Learning Framework for Deformable Medical Image Registration*,
    2019; the integration is that of A. Dalca et al., *Unsupervised Learning of Probabilistic Diffeomorphic
    Registration for Images and Surfaces*, 2019.
    """
    import torch
    from torch import nn

    class Registration(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.velocity = unet(nn.Conv2d, 2, 2)

        def forward(self, moving: Tensor, fixed: Tensor) -> tuple[Tensor, Tensor]:
            velocity = 20 * self.velocity(torch.cat([moving, fixed], 1))
            displacement = integrated(velocity, steps=5)
            return warp(moving, displacement), displacement

    return Registration(), (torch.randn(2, 1, 16, 20), torch.randn(2, 1, 16, 20))


def registration_3d() -> Built:
    """Registration of volumes: an affine alignment, then a diffeomorphic deformation of what it leaves.

    Source: B. de Vos et al., *A Deep Learning Framework for Unsupervised Affine and Deformable Image Registration*,
    2019, for the two stages; VoxelMorph (see `registration_2d`) for the second one.
    """
    import torch
    from torch import nn
    from torch.nn.functional import affine_grid, grid_sample, relu

    class Registration(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Conv3d(1, 8, 3, stride=2, padding=1)
            self.theta = nn.Linear(16, 12)
            self.theta.bias.data = torch.tensor([0.9, 0.2, 0, 0.1, -0.2, 1, 0, 0, 0, 0.1, 1.1, 0])
            self.velocity = unet(nn.Conv3d, 2, 3)

        def forward(self, moving: Tensor, fixed: Tensor) -> tuple[Tensor, Tensor]:
            pooled = [relu(self.features(volume)).mean((2, 3, 4)) for volume in (moving, fixed)]
            theta = self.theta(torch.cat(pooled, 1)).view(-1, 3, 4)
            grid = affine_grid(theta, list(fixed.shape), align_corners=True)
            aligned = grid_sample(moving, grid, padding_mode="border", align_corners=True)
            displacement = integrated(10 * self.velocity(torch.cat([aligned, fixed], 1)), steps=3)
            return warp(aligned, displacement), displacement

    return Registration(), (torch.randn(1, 1, 8, 10, 12), torch.randn(1, 1, 8, 10, 12))


def deformable_attention() -> Built:
    """Multi-scale deformable attention: each query looks at a few points of each level, which it chooses itself.

    Source: X. Zhu et al., *Deformable DETR: Deformable Transformers for End-to-End Object Detection*, 2021;
    ``ms_deform_attn_core_pytorch`` of its code.
    """
    import torch
    from torch import nn
    from torch.nn.functional import grid_sample

    levels = ((8, 10), (4, 5), (2, 3))
    heads, points, channels = 2, 4, 16
    pixels = [height * width for height, width in levels]

    class DeformableAttention(nn.Module):
        sizes: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.value = nn.Linear(channels, channels)
            self.offsets = nn.Linear(channels, heads * len(levels) * points * 2)
            self.weights = nn.Linear(channels, heads * len(levels) * points)
            self.output = nn.Linear(channels, channels)
            self.register_buffer("sizes", torch.tensor([level[::-1] for level in levels], dtype=torch.float32))
            turns = torch.arange(heads) * (2 * torch.pi / heads)
            away = torch.stack([turns.cos(), turns.sin()], -1)[:, None, None] * torch.arange(1, points + 1)[:, None]
            self.offsets.bias.data = away.expand(heads, len(levels), points, 2).flatten()

        def forward(self, query: Tensor, reference_points: Tensor, features: Tensor) -> Tensor:
            n, queries = query.shape[:2]
            offsets = self.offsets(query).view(n, queries, heads, len(levels), points, 2)
            locations = reference_points[:, :, None, :, None] + offsets / self.sizes[:, None]
            weights = self.weights(query).view(n, queries, heads, len(levels) * points).softmax(-1)
            value = self.value(features).view(n, sum(pixels), heads, channels // heads)
            sampled = []
            for level, part in enumerate(value.split(pixels, 1)):
                image = part.permute(0, 2, 3, 1).reshape(n * heads, channels // heads, *levels[level])
                grid = 2 * locations[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1
                sampled.append(grid_sample(image, grid, "bilinear", "zeros", align_corners=False))
            weights = weights.transpose(1, 2).reshape(n * heads, 1, queries, len(levels) * points)
            attended = (torch.cat(sampled, -1) * weights).sum(-1).view(n, channels, queries)
            output: Tensor = self.output(attended.transpose(1, 2))
            return output

    n, queries = 2, 7
    reference_points = torch.rand(n, queries, len(levels), 2)
    return DeformableAttention(), (
        torch.randn(n, queries, channels),
        reference_points,
        torch.randn(n, sum(pixels), channels),
    )


def face_reenactment() -> Built:
    """A source face moved as a driving face moves, by a warp of its feature volume.

    Keypoints of both faces give one motion each; a softmax mask blends them with the identity into a dense one, and
    an occlusion map dims what no source pixel shows.

    Source: T.-C. Wang et al., *One-Shot Free-View Neural Talking-Head Synthesis for Video Conferencing*, 2021
    (face-vid2vid), without its head pose; A. Siarohin et al., *First Order Motion Model for Image Animation*, 2019.
    """
    import torch
    from torch import nn
    from torch.nn.functional import grid_sample, relu

    keypoints, channels, depth, height, width = 3, 4, 4, 8, 8
    sizes = (depth, height, width)

    class FaceReenactment(nn.Module):
        identity: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.appearance = nn.Conv2d(3, channels * depth, 7, stride=4, padding=3)
            self.refined = nn.Conv3d(channels, channels, 3, padding=1)
            self.keypoints = nn.Conv2d(3, keypoints * depth, 7, stride=4, padding=3)
            self.motion = nn.Conv3d((keypoints + 1) * (channels + 1), 16, 3, padding=1)
            self.mask = nn.Conv3d(16, keypoints + 1, 3, padding=1)
            self.mask.weight.data *= 30  # about as decided as a trained one
            self.occlusion = nn.Conv2d(16 * depth, 1, 3, padding=1)
            self.decoder = nn.Sequential(nn.Conv2d(channels * depth, 48, 3, padding=1), nn.PixelShuffle(4))
            self.register_buffer("identity", normalized(pixel_positions(sizes, torch.empty(0)), sizes, True))

        def detected(self, face: Tensor) -> Tensor:
            """Keypoints (N, K, 3), where heatmaps have their means."""
            heat: Tensor = (self.keypoints(face).view(-1, keypoints, depth * height * width) / 0.1).softmax(-1)
            return heat @ self.identity.view(-1, 3)

        def heatmaps(self, where: Tensor) -> Tensor:
            """A Gaussian about each keypoint: (N, K, D, H, W)."""
            return torch.exp(-0.5 * (self.identity - where[:, :, None, None, None]).square().sum(-1) / 0.01)

        def dense_motion(self, volume: Tensor, source: Tensor, driving: Tensor) -> tuple[Tensor, Tensor]:
            n = volume.shape[0]
            moves = torch.cat([torch.zeros_like(source[:, :1]), source - driving], 1)
            motions = self.identity + moves[:, :, None, None, None]
            repeated = volume[:, None].expand(-1, keypoints + 1, -1, -1, -1, -1).flatten(0, 1)
            moved = grid_sample(repeated, motions.flatten(0, 1), align_corners=False)
            changes = self.heatmaps(driving) - self.heatmaps(source)
            changes = torch.cat([torch.zeros_like(changes[:, :1]), changes], 1)[:, :, None]
            clues = torch.cat([moved.view(n, keypoints + 1, channels, *sizes), changes], 2).flatten(1, 2)
            hidden = relu(self.motion(clues))
            mask = self.mask(hidden).softmax(1)
            return (mask[..., None] * motions).sum(1), self.occlusion(hidden.flatten(1, 2)).sigmoid()

        def forward(self, source: Tensor, driving: Tensor) -> Tensor:
            volume = self.refined(self.appearance(source).view(-1, channels, *sizes))
            grid, occlusion = self.dense_motion(volume, self.detected(source), self.detected(driving))
            moved = grid_sample(volume, grid, align_corners=False)
            face: Tensor = self.decoder(moved.flatten(1, 2) * occlusion).sigmoid()
            return face

    return FaceReenactment(), (torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32))


def optical_flow() -> Built:
    """Optical flow by look-ups in a pyramid of all correlations, and the second frame warped back by it.

    Source: Z. Teed and J. Deng, *RAFT: Recurrent All-Pairs Field Transforms for Optical Flow*, 2020 (its bilinear
    look-up with aligned corners), with a plain convolution as its update; the warp of the frame is bicubic.
    """
    import torch
    from torch import nn
    from torch.nn.functional import avg_pool2d, grid_sample, interpolate, relu

    channels, levels, radius, iterations = 16, 2, 2, 2
    window = (2 * radius + 1) ** 2

    class OpticalFlow(nn.Module):
        window: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(
                nn.Conv2d(3, 12, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(12, channels, 3, stride=2, padding=1)
            )
            self.update = nn.Conv2d(levels * window + channels + 2, 24, 3, padding=1)
            self.step = nn.Conv2d(24, 2, 3, padding=1)
            around = torch.arange(-radius, radius + 1, dtype=torch.float32)
            self.register_buffer("window", torch.stack(torch.meshgrid(around, around, indexing="ij"))[None])

        def pyramid(self, first: Tensor, second: Tensor) -> list[Tensor]:
            """Correlations of every pixel of the first frame (now the batch) with all pixels of the second one."""
            n, _, height, width = first.shape
            every_pair = first.flatten(2).transpose(1, 2) @ second.flatten(2) / channels**0.5
            maps = [every_pair.view(n * height * width, 1, height, width)]
            for _ in range(levels - 1):
                maps.append(avg_pool2d(maps[-1], 2))
            return maps

        def looked_up(self, pyramid: list[Tensor], positions: Tensor) -> Tensor:
            n, _, height, width = positions.shape
            centres = positions.permute(0, 2, 3, 1).reshape(n * height * width, 2, 1, 1)
            found = []
            for level, correlations in enumerate(pyramid):
                grid = normalized(centres / 2**level + self.window, correlations.shape[2:], True)
                found.append(grid_sample(correlations, grid, align_corners=True).view(n, height, width, window))
            return torch.cat(found, -1).permute(0, 3, 1, 2)

        def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
            features = self.encoder(first)
            pyramid = self.pyramid(features, self.encoder(second))
            flow = torch.zeros_like(features[:, :2])
            start = pixel_positions(features.shape[2:], flow)
            for _ in range(iterations):
                seen = torch.cat([self.looked_up(pyramid, start + flow), features, flow], 1)
                flow = flow + 8 * self.step(relu(self.update(seen)))
            full = 4 * interpolate(flow, scale_factor=4.0, mode="bilinear", align_corners=True)
            return full, warp(second, full, mode="bicubic")

    return OpticalFlow(), (torch.rand(2, 3, 24, 32), torch.rand(2, 3, 24, 32))


def label_warp() -> Built:
    """An atlas's labels carried over to another image by a displacement, of which some leads outside.

    Source: the nearest-neighbour transformer with which VoxelMorph (see `registration_2d`) is scored.
    """
    import torch
    from torch import nn

    class LabelWarp(nn.Module):
        def forward(self, labels: Tensor, displacement: Tensor) -> Tensor:
            return warp(labels, displacement, mode="nearest", padding_mode="reflection", align_corners=False)

    return LabelWarp(), (torch.randint(0, 9, (2, 1, 12, 17)).float(), 3 * torch.randn(2, 2, 12, 17))


def bilateral_slicing_float16() -> Built:
    """Photo enhancement in half precision: a bilateral grid of colour transforms, sliced at full size by a guide.

    Source: M. Gharbi et al., *Deep Bilateral Learning for Real-Time Image Enhancement*, 2017 (HDRNet).
    """
    import torch
    from torch import nn
    from torch.nn.functional import grid_sample, relu

    depth = 4

    class BilateralSlicing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Conv2d(3, 16, 3, stride=4, padding=1)
            self.transforms = nn.Conv2d(16, 12 * depth, 3, padding=1)
            self.guide = nn.Conv2d(3, 1, 1)

        def forward(self, photo: Tensor) -> Tensor:
            small = relu(self.features(photo))
            lattice = self.transforms(small).view(-1, 12, depth, *small.shape[2:])
            sizes = photo.shape[2:]
            plane = normalized(pixel_positions(sizes, photo), sizes, align_corners=False)
            shade = self.guide(photo).tanh().permute(0, 2, 3, 1)
            grid = torch.cat([plane.expand(photo.shape[0], -1, -1, -1), shade], -1)[:, None]
            sliced = grid_sample(lattice, grid, padding_mode="border", align_corners=False)[:, :, 0]
            gains, offsets = sliced[:, :9].view(-1, 3, 3, *sizes), sliced[:, 9:]
            enhanced: Tensor = (gains * photo[:, None]).sum(2) + offsets
            return enhanced

    return BilateralSlicing().half(), (torch.rand(1, 3, 24, 32).half(),)
